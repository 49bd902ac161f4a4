// What a program does with Pinot's Go client; prints a line for each answer.
package main

import (
	"fmt"
	"os"

	pinot "github.com/startreedata/pinot-client-go/pinot"
)

func count(kind string, connection *pinot.Connection, err error) {
	if err != nil {
		fmt.Println(kind, "failed:", err)
		os.Exit(1)
	}
	answer, err := connection.ExecuteSQL("orders", "select count(*), max(customer) from orders")
	if err != nil {
		fmt.Println(kind, "failed:", err)
		os.Exit(1)
	}
	fmt.Println(kind, answer.ResultTable.GetLong(0, 0), answer.ResultTable.GetString(0, 1))
}

func main() {
	connection, err := pinot.NewFromController(os.Args[1])
	count("controller", connection, err)
	connection, err = pinot.NewFromBrokerList([]string{os.Args[1]})
	count("broker", connection, err)
	answer, err := connection.ExecuteSQL("orders", "select nothing from orders")
	fmt.Println("exceptions", err == nil && len(answer.Exceptions) == 1)
}
