import { useLocation } from 'wouter'
import { CreateForm } from '../../components/create-form.tsx'
import { Page, Section } from '../../components/page.tsx'
import { naming } from './organization-fields.ts'

const NewOrganization = () => {
  const [, navigate] = useLocation()
  return (
    <Page title="New organization" above={{ title: 'Organizations', path: '/organizations' }}>
      <Section title="What it is" lead="It begins without members.">
        <CreateForm
          name="new organization"
          operation="createOrganization"
          fields={naming}
          label="Create organization"
          onDone={({ id }) => navigate(`/organizations/${id}`)}
        />
      </Section>
    </Page>
  )
}

export default NewOrganization
