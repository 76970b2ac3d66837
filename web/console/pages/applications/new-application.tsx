import { useState } from 'react'
import { useLocation } from 'wouter'
import { CopyableText } from '../../components/copy.tsx'
import { CreateForm } from '../../components/create-form.tsx'
import type { Draft, Field } from '../../components/field.ts'
import { LinkButton } from '../../components/link-button.tsx'
import { Notice } from '../../components/notice.tsx'
import { Page, Section } from '../../components/page.tsx'
import type { Calls } from '../../generated/api.ts'
import { applicationTypes, typeLabels } from './application-types.ts'
import { redirectUris } from './settings-fields.tsx'

const above = { title: 'Applications', path: '/applications' }

const fieldsOf = ({ type }: Draft): Field[] => [
  { path: 'name', label: 'Name', isRequired: true, hint: 'People see it when they sign in.' },
  {
    ...{ path: 'type', label: 'Kind', kind: 'choice', options: typeLabels, isRequired: true },
    hint: `${applicationTypes[type as keyof typeof applicationTypes]?.summary ?? ''}. It never changes.`,
  },
  { path: 'description', label: 'Description' },
  ...(type === 'MachineToMachine' ? [] : [redirectUris]),
]

/** Makes an application, and shows its secret, once. */
const NewApplication = () => {
  const [, navigate] = useLocation()
  const [made, setMade] = useState<Calls['createApplication']['answer']>()
  if (made?.secret) return <FirstSecret id={made.id} name={made.name} secret={made.secret} />
  return (
    <Page title="New application" above={above}>
      <Section title="What it is">
        <CreateForm
          name="new application"
          operation="createApplication"
          fields={fieldsOf}
          initial={{ type: 'Traditional' }}
          label="Create application"
          onDone={(answer) => (answer.secret ? setMade(answer) : navigate(`/applications/${answer.id}`))}
        />
      </Section>
    </Page>
  )
}

const FirstSecret = ({ id, name, secret }: { id: string; name: string; secret: string }) => (
  <Page title={`${name} is ready`} above={above}>
    <Section title="Its secret" lead="Put both where the application reads its configuration.">
      <CopyableText label="client id" text={id} />
      <CopyableText label="client secret" text={secret} />
      <Notice kind="warn">This is the only time that the secret is shown. Whoever loses it makes another one.</Notice>
      <div>
        <LinkButton kind="main" path={`/applications/${id}`}>
          To the guide
        </LinkButton>
      </div>
    </Section>
  </Page>
)

export default NewApplication
