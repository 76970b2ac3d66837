# Whoever acts for a user may look and not touch: of the scopes asked for only those that read are granted. Holders of one role may write.
package surrogate.impersonation

withheld contains scope if {
	some scope in input.scopes
	not reads(scope)
	not may_write
}

reads(scope) if startswith(scope, "read:")

reads("openid")

may_write if "support-lead" in input.actor.roles
