import { useState } from 'react'
import { useChange } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyAsCurl } from '../../components/copy.tsx'
import { Fields } from '../../components/fields.tsx'
import { announce, Notice, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import type { Connector } from '../connectors/kinds.ts'
import style from './messages.module.css'

/** Sends a message with the saved configuration, and says what came of it. */
export const TestSend = ({ connector: { connectorId, config, type } }: { connector: Connector }) => {
  const [to, setTo] = useState('')
  const send = useChange('testConnector')
  const isMail = type === 'Email'
  const input = { params: { factoryId: connectorId }, body: { config, ...(isMail ? { email: to } : { phone: to }) } }
  return (
    <Section
      title="Test"
      lead="A message with a code that opens nothing, by what is saved. It waits for the provider's answer."
    >
      <form
        className={style.test}
        onSubmit={(event) => {
          event.preventDefault()
          send.mutate(input, { onSuccess: () => announce('The provider took it.') })
        }}
      >
        <ProblemNotice error={send.error} />
        {send.isSuccess && <Notice kind="good">The provider took it. Now it must arrive.</Notice>}
        <Fields
          fields={[
            {
              ...{
                path: 'to',
                label: isMail ? 'To this e-mail address' : 'To this telephone number',
                isRequired: true,
              },
              ...{ placeholder: isMail ? 'you@example.com' : '+49 170 1234567', isCode: true },
            },
          ]}
          values={{ to }}
          onChange={(_, value) => setTo(String(value))}
        />
        <div className={style.actions}>
          <Allowed operation="testConnector">
            <Button type="submit" kind="main" isPending={send.isPending}>
              Send
            </Button>
          </Allowed>
          <CopyAsCurl operation="testConnector" input={input} />
        </div>
      </form>
    </Section>
  )
}
