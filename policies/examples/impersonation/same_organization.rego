# Nobody is reached across organizations: the acting party and the subject must be members of one and the same, and where the token is for
# an organization, of that one. Without an acting party there is none in common, so an exchange without an actor token is refused. At
# minting this is asked only when the request names the acting party.
package surrogate.impersonation

deny contains "no_common_organization" if {
	members_are_known
	not share_an_organization
}

deny contains "actor_outside_organization" if {
	input.organization
	not actor_is_inside
}

# A rule of its own, so that `not` holds also where there is no acting party.
actor_is_inside if input.organization.id in input.actor.organizations

members_are_known if input.stage == "exchange"

members_are_known if input.actor

share_an_organization if {
	some organization in input.subject.organizations
	organization in input.actor.organizations
}
