# Sessions end sooner: after half an hour without use and after a working day for staff, after four hours in third-party applications.
package surrogate.signin

staff_roles := {"admin", "support"}

idle_ttl contains 1800 if is_staff

absolute_ttl contains 28800 if is_staff

absolute_ttl contains 14400 if input.client.isThirdParty

is_staff if {
	some role in input.subject.roles
	role in staff_roles
}
