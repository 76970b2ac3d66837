import { useLocation, useSearchParams } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { CreateForm } from '../../components/create-form.tsx'
import { Loading, Page, Section } from '../../components/page.tsx'
import { configFields } from '../connectors/config-fields.ts'
import { KindList } from '../connectors/new-connector.tsx'
import { companyFields } from './provider-fields.ts'

const here = '/identity-providers/new/company'

const NewCompany = () => {
  const [, navigate] = useLocation()
  const [search] = useSearchParams()
  const { data } = useRead('listSsoConnectorProviders')
  if (!data) return <Loading />
  const chosen = data.body.find(({ providerName }) => providerName === search.get('kind'))
  return (
    <Page title="New company" above={{ title: 'Identity providers', path: '/identity-providers' }}>
      {chosen ? (
        <Section title={chosen.name}>
          <CreateForm
            name={`new ${chosen.providerName}`}
            operation="createSsoConnector"
            fields={[...companyFields, ...configFields(chosen.configSchema, true)]}
            bodyOf={(body) => ({ providerName: chosen.providerName, ...body })}
            label="Add the company"
            onDone={({ id }) => navigate(`/identity-providers/company/${id}`)}
          />
        </Section>
      ) : (
        <KindList
          path={here}
          rows={data.body.map(({ providerName, name }) => ({
            id: providerName,
            name,
            description: 'By OpenID Connect.',
          }))}
        />
      )}
    </Page>
  )
}

export default NewCompany
