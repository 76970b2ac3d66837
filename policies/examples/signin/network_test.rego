package surrogate.signin_test

import data.surrogate.signin

network_refused(roles, ip) if {
	"network_not_allowed" in signin.deny with input as {"stage": "mfa", "subject": {"roles": roles}, "ip": ip}
}

test_an_administrator_signs_in_from_the_office if {
	not network_refused(["admin"], "192.0.2.77")
	not network_refused(["admin"], "2001:db8:1::7")
}

test_an_administrator_does_not_sign_in_from_elsewhere if {
	network_refused(["admin"], "198.51.100.7")
	network_refused(["admin"], "2001:db8:2::7")
}

test_an_address_that_cannot_be_read_is_not_known if network_refused(["admin"], "unknown")

test_others_sign_in_from_anywhere if not network_refused(["customer"], "198.51.100.7")
