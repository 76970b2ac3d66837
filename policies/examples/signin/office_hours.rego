# Some applications are for office hours only: Monday to Friday, 7 to 19 o'clock where the office is.
package surrogate.signin

office_clients := {"Back office"}

office_zone := "Europe/Berlin"

deny contains "outside_office_hours" if {
	input.client.name in office_clients
	not office_is_open
}

office_is_open if {
	moment := [input.now * 1000000000, office_zone]
	not time.weekday(moment) in {"Saturday", "Sunday"}
	[hour, _, _] := time.clock(moment)
	hour >= 7
	hour < 19
}
