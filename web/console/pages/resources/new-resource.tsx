import { useLocation } from 'wouter'
import { CreateForm } from '../../components/create-form.tsx'
import { Page, Section } from '../../components/page.tsx'

const NewResource = () => {
  const [, navigate] = useLocation()
  return (
    <Page title="New resource" above={{ title: 'Resources', path: '/resources' }}>
      <Section title="Your API">
        <CreateForm
          name="new resource"
          operation="createResource"
          fields={[
            { path: 'name', label: 'Name', isRequired: true },
            {
              ...{ path: 'indicator', label: 'Indicator', isRequired: true, isCode: true },
              ...{ placeholder: 'https://api.example.com/orders' },
              hint: 'The address by which applications ask for tokens, and their audience. It never changes.',
            },
          ]}
          label="Create resource"
          onDone={({ id }) => navigate(`/resources/${id}`)}
        />
      </Section>
    </Page>
  )
}

export default NewResource
