import { useLocation } from 'wouter'
import { CreateForm } from '../../components/create-form.tsx'
import { Page, Section } from '../../components/page.tsx'
import { hookFields } from './hook-fields.tsx'

const NewHook = () => {
  const [, navigate] = useLocation()
  return (
    <Page title="New hook" above={{ title: 'Hooks', path: '/hooks' }}>
      <Section title="Where to, and what">
        <CreateForm
          {...{ name: 'new hook', operation: 'createHook', fields: hookFields, label: 'Create hook' }}
          onDone={({ id }) => navigate(`/hooks/${id}/settings`)}
        />
      </Section>
    </Page>
  )
}

export default NewHook
