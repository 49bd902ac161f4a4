--- text of a path
select id, json_extract_scalar(doc, '$.k', 'STRING') from parity where id < 4 order by id
-- by hand
select id, doc ->> '$.k' from parity where id < 4 order by id
--- numbers of a path
select json_extract_scalar(doc, '$.n', 'INT'), json_extract_scalar(doc, '$.n', 'LONG'), json_extract_scalar(doc, '$.x.z', 'DOUBLE') from parity where id < 4 order by id
-- by hand
select (doc ->> '$.n')::int, (doc ->> '$.n')::bigint, (doc ->> '$.x.z')::double from parity where id < 4 order by id
--- an element of a list
select jsonextractscalar(doc, '$.x.y[1]', 'INT') from parity where id < 4 order by id
-- by hand
select (doc ->> '$.x.y[1]')::int from parity where id < 4 order by id
--- a default
select json_extract_scalar(doc, '$.nothing', 'STRING', 'none'), json_extract_scalar(doc, '$.nothing', 'INT', -1) from parity where id = 0
-- by hand
select 'none', -1
--- nothing without a default
-- differs: JSON values that are not there
select json_extract_scalar(doc, '$.nothing', 'STRING') from parity where id = 0
-- by hand
select null
--- a truth value as text
select json_extract_scalar(doc, '$.flag', 'STRING') from parity where id < 2 order by id
-- by hand
select doc ->> '$.flag' from parity where id < 2 order by id
--- an object as text
select json_extract_scalar(doc, '$.x', 'STRING') from parity where id = 1
-- by hand
select doc ->> '$.x' from parity where id = 1
--- in a condition
-- differs: JSON values that are not there
select count(*) from parity where id < 20 and json_extract_scalar(doc, '$.k', 'STRING') = 'v1'
-- by hand
select count(*) from parity where id < 20 and doc ->> '$.k' = 'v1'
--- as a key
-- differs: JSON values that are not there
select json_extract_scalar(doc, '$.k', 'STRING', 'none') as k, count(*) from parity group by k limit 10
-- by hand
select coalesce(case when json_valid(doc) then doc ->> '$.k' end, 'none') as k, count(*) from parity group by k
--- in an aggregate
select sum(json_extract_scalar(doc, '$.n', 'LONG', 0)) from parity where id < 20
-- by hand
select sum((doc ->> '$.n')::bigint) from parity where id < 20
--- with brackets
select json_extract_scalar(doc, '$[''k'']', 'STRING') from parity where id = 0
-- by hand
select 'v0'
--- jsonpathstring
-- differs: SQL that Pinot 0.11 does not answer
select jsonpathstring(doc, '$.k'), jsonpathlong(doc, '$.n'), jsonpathdouble(doc, '$.x.z') from parity where id = 1
-- by hand
select 'v1', 1, 0.5
