package surrogate.signin_test

import data.surrogate.signin

staying(roles, third_party) := {"stage": "finish", "subject": {"roles": roles}, "client": {"isThirdParty": third_party}}

test_staff_has_a_working_day if {
	1800 in signin.idle_ttl with input as staying(["support"], false)
	28800 in signin.absolute_ttl with input as staying(["support"], false)
}

test_third_parties_have_less if 14400 in signin.absolute_ttl with input as staying(["customer"], true)

test_customers_keep_what_the_settings_say if {
	not 1800 in signin.idle_ttl with input as staying(["customer"], false)
	not 28800 in signin.absolute_ttl with input as staying(["customer"], false)
	not 14400 in signin.absolute_ttl with input as staying(["customer"], false)
}
