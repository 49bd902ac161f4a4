import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.apache.pinot.client.ConnectionFactory;
import org.apache.pinot.client.PinotDriver;

/** What a program does with Pinot's JDBC driver and Java client; prints a line for each answer. */
public class Clients {
  public static void main(String[] arguments) {
    try {
      callAll(arguments);
      System.exit(0);
    } catch (Exception error) { // the clients' threads would keep the process
      error.printStackTrace();
      System.exit(1);
    }
  }

  private static void callAll(String[] arguments) throws Exception {
    String host = arguments[0];
    int port = Integer.parseInt(arguments[1]);
    DriverManager.registerDriver(new PinotDriver());
    try (Connection connection = DriverManager.getConnection("jdbc:pinot://" + host + ":" + port)) {
      ResultSet rows = connection.createStatement()
          .executeQuery("select order_id, customer, amount, ts from orders order by order_id limit 2");
      while (rows.next()) {
        System.out.println("jdbc " + rows.getInt(1) + " " + rows.getString("customer") + " " + rows.getFloat(3) + " " + rows.getLong(4));
      }
      PreparedStatement prepared =
          connection.prepareStatement("select count(*) from orders where customer = ? and order_id > ?");
      prepared.setString(1, "ada");
      prepared.setInt(2, 1);
      rows = prepared.executeQuery();
      rows.next();
      System.out.println("prepared " + rows.getLong(1));
      ResultSet tables = connection.getMetaData().getTables(null, null, "%", null);
      while (tables.next()) {
        System.out.println("table " + tables.getString("TABLE_NAME"));
      }
      ResultSet columns = connection.getMetaData().getColumns(null, null, "orders", "%");
      while (columns.next()) {
        System.out.println("column " + columns.getString("COLUMN_NAME"));
      }
      try {
        connection.createStatement().executeQuery("select nothing from orders");
        System.out.println("no error");
      } catch (SQLException error) {
        System.out.println("refused " + (error.toString() + error.getCause()).contains("nothing"));
      }
    }
    var client = ConnectionFactory.fromController("http", host, port);
    System.out.println("controller " + client.execute("select count(*) from orders").getResultSet(0).getLong(0));
    client = ConnectionFactory.fromHostList(host + ":" + port);
    System.out.println("broker " + client.execute("select max(order_id) from orders").getResultSet(0).getString(0, 0));
  }
}
