import java.io.*;
import java.time.*;
import java.time.format.DateTimeFormatter;
import java.time.temporal.*;
import java.time.zone.*;
import java.util.*;
import java.util.concurrent.TimeUnit;

/** Answers to time expressions by java.time. `zones` prints the transitions of every zone, `ask` reads cases by line. */
public class TimeOracle {
  static final long FROM = Instant.parse("1900-01-01T00:00:00Z").getEpochSecond();
  static final long TO = Instant.parse("2100-01-01T00:00:00Z").getEpochSecond();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, "UTF-8");
    if (arguments[0].equals("zones")) {
      zones(out);
    } else {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        out.println(answer(line.split("\t")));
      }
    }
    out.flush();
  }

  static void zones(PrintStream out) {
    for (String id : new TreeSet<>(ZoneId.getAvailableZoneIds())) {
      ZoneRules rules = ZoneId.of(id).getRules();
      Instant at = Instant.ofEpochSecond(FROM);
      out.print(id + "\t" + rules.getOffset(at).getTotalSeconds() + "\t");
      for (var next = rules.nextTransition(at); next != null && next.toEpochSecond() < TO;
          next = rules.nextTransition(at)) {
        out.print(next.toEpochSecond() + ":" + next.getOffsetAfter().getTotalSeconds() + " ");
        at = next.getInstant();
      }
      out.println();
    }
  }

  static String answer(String[] words) {
    switch (words[0]) {
      case "trunc":
        return String.valueOf(unit(words[4]).convert(
            truncate(words[1], unit(words[3]).toMillis(Long.parseLong(words[2])), ZoneId.of(words[5])),
            TimeUnit.MILLISECONDS));
      case "part":
        return String.valueOf(part(words[1], at(words[2], words[3])));
      case "write":
        return DateTimeFormatter.ofPattern(words[3], Locale.ENGLISH).format(at(words[1], words[2]));
      case "read":
        return String.valueOf(LocalDateTime.parse(words[1], DateTimeFormatter.ofPattern(words[3], Locale.ENGLISH))
            .atZone(ZoneId.of(words[2])).toInstant().toEpochMilli());
      case "convert":
        return String.valueOf(unit(words[3]).convert(Long.parseLong(words[1]), unit(words[2])));
      case "bucket":
        return bucket(at(words[1], words[2]), Integer.parseInt(words[3]), words[4], words[5]);
      case "epochs":
        long step = Long.parseLong(words[3]) * unit(words[4]).toMillis(1);
        return String.valueOf(unit(words[2]).convert(Long.parseLong(words[1]) / step * step, TimeUnit.MILLISECONDS));
      default:
        throw new IllegalArgumentException(words[0]);
    }
  }

  static TimeUnit unit(String name) {
    return TimeUnit.valueOf(name);
  }

  static ZonedDateTime at(String millis, String zone) {
    return Instant.ofEpochMilli(Long.parseLong(millis)).atZone(ZoneId.of(zone));
  }

  /** By Joda's rule: units below a day in the instant's own offset, the others in local time, keeping the offset. */
  static long truncate(String unit, long millis, ZoneId zone) {
    ZonedDateTime at = Instant.ofEpochMilli(millis).atZone(zone);
    LocalDateTime local = at.toLocalDateTime();
    switch (unit) {
      case "MILLISECOND": case "SECOND": case "MINUTE": case "HOUR":
        ChronoUnit clock = ChronoUnit.valueOf(unit.equals("MILLISECOND") ? "MILLIS" : unit + "S");
        return local.truncatedTo(clock).toInstant(at.getOffset()).toEpochMilli();
      default:
    }
    LocalDate day = local.toLocalDate();
    switch (unit) {
      case "WEEK": day = day.with(TemporalAdjusters.previousOrSame(DayOfWeek.MONDAY)); break;
      case "MONTH": day = day.withDayOfMonth(1); break;
      case "QUARTER": day = day.with(IsoFields.DAY_OF_QUARTER, 1); break;
      case "YEAR": day = day.withDayOfYear(1); break;
      default:
    }
    return ZonedDateTime.ofLocal(day.atStartOfDay(), zone, at.getOffset()).toInstant().toEpochMilli();
  }

  static int part(String name, ZonedDateTime at) {
    switch (name) {
      case "YEAR": return at.getYear();
      case "QUARTER": return at.get(IsoFields.QUARTER_OF_YEAR);
      case "MONTH": return at.getMonthValue();
      case "WEEK": return at.get(IsoFields.WEEK_OF_WEEK_BASED_YEAR);
      case "YEAROFWEEK": return at.get(IsoFields.WEEK_BASED_YEAR);
      case "DAY": return at.getDayOfMonth();
      case "DAYOFYEAR": return at.getDayOfYear();
      case "DAYOFWEEK": return at.getDayOfWeek().getValue();
      case "HOUR": return at.getHour();
      case "MINUTE": return at.getMinute();
      case "SECOND": return at.getSecond();
      default: return at.getNano() / 1_000_000;
    }
  }

  static String bucket(ZonedDateTime at, int size, String unit, String pattern) {
    if (size == 1) {
      String name = unit.substring(0, unit.length() - 1);
      Instant start = Instant.ofEpochMilli(truncate(name, at.toInstant().toEpochMilli(), at.getZone()));
      return DateTimeFormatter.ofPattern(pattern, Locale.ENGLISH).format(start.atZone(at.getZone()));
    }
    LocalDateTime local = at.toLocalDateTime();
    switch (unit) {
      case "SECONDS": local = local.truncatedTo(ChronoUnit.SECONDS).withSecond(local.getSecond() / size * size); break;
      case "MINUTES": local = local.truncatedTo(ChronoUnit.MINUTES).withMinute(local.getMinute() / size * size); break;
      case "HOURS": local = local.truncatedTo(ChronoUnit.HOURS).withHour(local.getHour() / size * size); break;
      default: local = local.truncatedTo(ChronoUnit.DAYS);
    }
    return DateTimeFormatter.ofPattern(pattern, Locale.ENGLISH)
        .format(ZonedDateTime.ofLocal(local, at.getZone(), at.getOffset()));
  }
}
