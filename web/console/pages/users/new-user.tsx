import { useLocation } from 'wouter'
import { CreateForm } from '../../components/create-form.tsx'
import { Page, Section } from '../../components/page.tsx'
import { profileFields } from './profile-fields.ts'

const NewUser = () => {
  const [, navigate] = useLocation()
  return (
    <Page title="New user" above={{ title: 'Users', path: '/users' }}>
      <Section title="Who it is" lead="A user name, an e-mail address or a telephone number is enough to sign in with.">
        <CreateForm
          name="new user"
          operation="createUser"
          fields={[
            ...profileFields,
            {
              ...{ path: 'password', label: 'Password', kind: 'password', autoComplete: 'new-password' },
              hint: 'Without one they sign in by a code or a link, or set it themselves.',
            },
          ]}
          label="Create user"
          onDone={({ id }) => navigate(`/users/${id}`)}
        />
      </Section>
    </Page>
  )
}

export default NewUser
