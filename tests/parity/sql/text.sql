--- case of letters
select id, upper(name), lower(name) from parity where id < 11 order by id limit 11
-- by hand
select id, upper(name), lower(name) from parity where id < 11 order by id
--- length
select id, length(name) from parity where id < 11 order by id limit 11
-- by hand
select id, length(name) from parity where id < 11 order by id
--- concat with a separator
select concat(s, name, '-') from parity where id < 3 order by id
-- by hand
select s || '-' || name from parity where id < 3 order by id
--- substr counts from zero
select substr(s, 1), substr(s, 0, 2), substr(s, 1, -1) from parity where id < 3 order by id
-- by hand
select s[2:], s[1:2], s[2:] from parity where id < 3 order by id
--- trim
select trim(concat(' ', ' ', s)), ltrim(concat(' ', s, ' ')), rtrim(concat(s, ' ', ' ')) from parity where id = 0
-- by hand
select 'red', 'red', 'red'
--- strpos counts from zero
select strpos(s, 'e'), strpos(s, 'q'), strrpos(s, 'e') from parity where id < 3 order by id
-- by hand
select strpos(s, 'e') - 1, -1, case id when 0 then 1 else 3 end from parity where id < 3 order by id
--- replace reverse remove
select replace(s, 'e', 'E'), reverse(s), remove(s, 'e') from parity where id < 3 order by id
-- by hand
select replace(s, 'e', 'E'), reverse(s), replace(s, 'e', '') from parity where id < 3 order by id
--- lpad rpad
select lpad(s, 6, '*'), rpad(s, 6, '*') from parity where id < 3 order by id
-- by hand
select lpad(s, 6, '*'), rpad(s, 6, '*') from parity where id < 3 order by id
--- lpad does not cut
select lpad(s, 2, '*'), rpad(s, 2, '*') from parity where id < 3 order by id
-- by hand
select s, s from parity where id < 3 order by id
--- startswith endswith contains
select id, startswith(s, 'r'), endswith(s, 'e'), contains(s, 'ee') from parity where id < 3 order by id
-- by hand
select id, starts_with(s, 'r'), ends_with(s, 'e'), contains(s, 'ee') from parity where id < 3 order by id
--- startswith in a condition
select id from parity where startswith(s, 'r') = 'true' and id < 12 order by id
-- by hand
select id from parity where starts_with(s, 'r') and id < 12 order by id
--- splitpart counts from zero
select splitpart(name, '-', 0), splitpart(name, '-', 2) from parity where id = 9
-- by hand
select 'x', 'z'
--- split
select split(name, '-') from parity where id = 9
-- by hand
select ['x', 'y', 'z']
--- repeat
select repeat(s, 2), repeat(s, '-', 2) from parity where id = 0
-- by hand
select 'redred', 'red-red'
--- codepoint chr
-- differs: constants
select codepoint(s), chr(65) from parity where id < 2 order by id
-- by hand
select unicode(s), 'A' from parity where id < 2 order by id
--- leftsubstr rightsubstr
select leftsubstr(s, 2), rightsubstr(s, 2) from parity where id < 2 order by id
-- by hand
select left(s, 2), right(s, 2) from parity where id < 2 order by id
--- hammingdistance
select hammingdistance(s, 'rad') from parity where id < 2 order by id
-- by hand
select case id when 0 then 1 else -1 end from parity where id < 2 order by id
--- regexpreplace replaces all
select regexpreplace(s, 'e', 'X') from parity where id < 3 order by id
-- by hand
select replace(s, 'e', 'X') from parity where id < 3 order by id
--- regexpextract
select regexpextract(name, '[a-z]+'), regexp_extract(name, '([a-z])-([a-z])', 2) from parity where id = 9
-- by hand
select 'x', 'y'
--- like with a percent
select id from parity where s like 'gr%' and id < 12 order by id
-- by hand
select id from parity where s like 'gr%' and id < 12 order by id
--- like does not regard case
select id from parity where s like 'red' and id < 12 order by id
-- by hand
select id from parity where lower(s) = 'red' and id < 12 order by id
--- like with an underscore
select id from parity where name like 'fi__1' order by id
-- by hand
select id from parity where name like 'fi__1' order by id
--- like in the middle
select count(*) from parity where name like '%an%'
-- by hand
select count(*) from parity where name like '%an%'
--- not like
select count(*) from parity where s not like 'r%'
-- by hand
select count(*) from parity where not starts_with(lower(s), 'r')
--- like of letters beyond ascii
select id from parity where name like 'ÄPF%' order by id
-- by hand
select id from parity where name = 'äpfel' order by id
--- like with signs of regular expressions
select distinct name from parity where name like 'x-y.%' or name like '%grape%'
-- by hand
select 'grape%'
--- regexp_like finds a part
select id from parity where regexp_like(name, 'a.*e') and id < 11 order by id limit 11
-- by hand
select id from parity where regexp_matches(lower(name), 'a.*e') and id < 11 order by id
--- regexp_like does not regard case
select id from parity where regexp_like(s, '^RED$') and id < 8 order by id
-- by hand
select id from parity where lower(s) = 'red' and id < 8 order by id
--- regexp_like with anchors and classes
select distinct name from parity where regexp_like(name, '^[a-f].*[0-9y]$') limit 50
-- by hand
select distinct name from parity where regexp_matches(lower(name), '^[a-f].*[0-9y]$')
--- not regexp_like
select count(*) from parity where not regexp_like(s, 'r')
-- by hand
select count(*) from parity where not contains(lower(s), 'r')
--- urls
-- differs: constants
select encodeurl('a b&c=d/~*'), decodeurl('a+b%26') from parity limit 1
-- by hand
select 'a+b%26c%3Dd%2F%7E*', 'a b&'
--- urls of a column
select encodeurl(name) from parity where id in (5, 6, 8) order by id
-- by hand
select case id when 5 then 'fig_1' when 6 then 'grape%25' else '%C3%A4pfel' end from parity where id in (5, 6, 8) order by id
--- base64
select tobase64(toutf8(s)), fromutf8(frombase64(tobase64(toutf8(s)))) from parity where id = 0
-- by hand
select 'cmVk', 'red'
--- hashes
select md5(raw), sha256(raw), sha(raw) from parity where id = 0
-- by hand
select md5(raw), sha256(raw), sha1(raw) from parity where id = 0
--- hex
-- differs: constants
select bytestohex(raw), hextobytes('ff00') from parity where id = 1
-- by hand
select lower(hex(raw)), unhex('ff00') from parity where id = 1
--- text functions as keys
select substr(s, 0, 1), count(*) from parity group by substr(s, 0, 1) limit 20
-- by hand
select left(s, 1) as c, count(*) from parity group by c
--- substr from the end
select substr(s, -1) from parity where id = 0
-- by hand
select 'd'
--- splitpart beyond the last part
select splitpart(name, '-', 5) from parity where id = 9
-- by hand
select 'null'
