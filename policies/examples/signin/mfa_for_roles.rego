# People with these roles need two factors, and get a second one before they are let in if they have none. A session that they began with one
# is not enough.
package surrogate.signin

roles_with_mfa := {"admin", "support"}

require contains "mfa" if needs_mfa_by_role

require contains "enrol" if {
	needs_mfa_by_role
	count(input.factors.available) == 0
}

needs_mfa_by_role if {
	input.stage != "prove"
	some role in input.subject.roles
	role in roles_with_mfa
}
