import { useLocation } from 'wouter'
import { CreateForm } from '../../components/create-form.tsx'
import { Page, Section } from '../../components/page.tsx'
import { holders } from './role-types.ts'

const NewRole = () => {
  const [, navigate] = useLocation()
  return (
    <Page title="New role" above={{ title: 'Roles', path: '/roles' }}>
      <Section title="What it is">
        <CreateForm
          name="new role"
          operation="createRole"
          initial={{ type: 'User' }}
          fields={[
            { path: 'name', label: 'Name', isRequired: true },
            { path: 'description', label: 'Description', isRequired: true },
            {
              path: 'type',
              label: 'For',
              kind: 'choice',
              options: holders,
              isRequired: true,
              hint: 'It never changes.',
            },
          ]}
          label="Create role"
          onDone={({ id }) => navigate(`/roles/${id}`)}
        />
      </Section>
    </Page>
  )
}

export default NewRole
