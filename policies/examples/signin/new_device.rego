# A browser in which this person never signed in: two factors, and the test for machines before that. After some failures even in a known
# one.
package surrogate.signin

failures_that_alarm := 3

require contains "captcha" if {
	input.stage == "prove"
	not input.device.known
}

require contains "mfa" if {
	input.stage != "prove"
	device_is_not_trusted
}

device_is_not_trusted if not input.device.known

device_is_not_trusted if input.failures >= failures_that_alarm
