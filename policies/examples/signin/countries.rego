# Nobody signs in from these countries, as a trusted proxy says where somebody is (X-Logto-Cf-Country). Where none says it, nothing is known
# and nobody is refused.
package surrogate.signin

blocked_countries := {"KP"}

deny contains "country_not_allowed" if upper(input.country) in blocked_countries
