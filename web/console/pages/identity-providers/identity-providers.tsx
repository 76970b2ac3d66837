import { Link } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'

/** Who else can say who people are: for everybody, and for the people of a company. */
const IdentityProviders = () => {
  const social = useRead('listConnectors')
  const enterprise = useRead('listSsoConnectors')
  const experience = useRead('getSignInExperience')
  const offered = experience.data?.body.socialSignInConnectorTargets ?? []
  return (
    <Page title="Identity providers" lead="Where people have an account already, and sign in with it here.">
      <ProblemNotice error={social.error ?? enterprise.error} />
      <Section
        title="For everybody"
        lead="A button on the sign-in page, where the sign-in settings offer it."
        actions={
          <Allowed operation="createConnector">
            <LinkButton icon="plus" path="/identity-providers/new/social">
              Add a provider
            </LinkButton>
          </Allowed>
        }
      >
        {social.data ? (
          <Rows
            title="For everybody"
            empty="There is none: people sign in with what they have here."
            rows={social.data.body
              .filter(({ type }) => type === 'Social')
              .map(({ id, name, target, description }) => ({
                key: id,
                title: <Link href={`/identity-providers/social/${id}`}>{name}</Link>,
                facts: `${target} · ${description}`,
                actions: offered.includes(target) ? (
                  <Badge kind="good">offered</Badge>
                ) : (
                  <LinkButton path="/sign-in-settings">Not offered yet</LinkButton>
                ),
              }))}
          />
        ) : (
          <Loading lines={2} />
        )}
      </Section>
      <Section
        title="For companies"
        lead="Whoever types an address of one of its domains signs in at the company."
        actions={
          <Allowed operation="createSsoConnector">
            <LinkButton icon="plus" path="/identity-providers/new/company">
              Add a company
            </LinkButton>
          </Allowed>
        }
      >
        {enterprise.data ? (
          <Rows
            title="For companies"
            empty="There is none."
            rows={enterprise.data.body.map(({ id, connectorName, name, domains, config }) => ({
              key: id,
              title: <Link href={`/identity-providers/company/${id}`}>{connectorName}</Link>,
              facts: `${name} · ${domains.join(', ') || 'no domain yet'}`,
              actions: Object.keys(config).length === 0 && <Badge kind="warn">not configured</Badge>,
            }))}
          />
        ) : (
          <Loading lines={2} />
        )}
      </Section>
    </Page>
  )
}

export default IdentityProviders
