import { useState } from 'react'
import { useChange, useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyableText } from '../../components/copy.tsx'
import type { Field } from '../../components/field.ts'
import { Fields } from '../../components/fields.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import style from './claims.module.css'
import type { TokenType } from './kinds.ts'
import { useTrialInput } from './trial-input.ts'

/** Its tokens are for nobody but this page. */
const consoleClientId = 'surrogate-console'

interface TrialProps {
  tokenType: TokenType
  script: string
  environmentVariables: Record<string, string>
}

/** Runs what is typed, saved or not, for a real person or application; nothing is issued. */
export const Trial = ({ tokenType, script, environmentVariables }: TrialProps) => {
  const [values, setValues] = useState<Readonly<Record<string, unknown>>>({})
  const inputOf = useTrialInput(tokenType)
  const run = useChange('testClaimsScript')
  const [before, setBefore] = useState<object>()
  const [wrong, setWrong] = useState<unknown>()
  const { data: applications } = useRead('listApplications', { query: { page: 1, page_size: 100 } })
  const isOfPeople = tokenType === 'access-token'
  const possible = (applications?.body ?? []).filter(
    ({ id, type }) => (type === 'MachineToMachine') !== isOfPeople && id !== consoleClientId,
  )
  const fields: Field[] = [
    ...(isOfPeople
      ? [{ path: 'user', label: 'User', isCode: true, isRequired: true, hint: 'Id, name, or part of an address.' }]
      : []),
    {
      ...{ path: 'application', label: 'Application', kind: 'choice' },
      options: Object.fromEntries(possible.map(({ id, name }) => [id, name])),
    },
  ]
  const application = String(values['application'] ?? possible[0]?.id ?? '')
  const start = async () => {
    setWrong(undefined)
    try {
      const { token, context } = await inputOf(String(values['user'] ?? ''), application)
      setBefore(token)
      run.mutate({ body: { tokenType, script, environmentVariables, token, context } })
    } catch (error) {
      setWrong(error)
    }
  }
  return (
    <Section
      title="Try it"
      lead="With what stands above, saved or not, for somebody who is really there. No token is issued; that you tried is in the audit trail."
    >
      <Fields
        fields={fields}
        values={{ ...values, application }}
        onChange={(path, value) => setValues({ ...values, [path]: value })}
      />
      <div>
        <Allowed operation="testClaimsScript">
          <Button icon="check" isDisabled={application === ''} isPending={run.isPending} onPress={() => void start()}>
            Run it
          </Button>
        </Allowed>
      </div>
      {applications && possible.length === 0 && <p>There is no application yet that would get such a token.</p>}
      <ProblemNotice error={wrong ?? run.error} />
      {run.data && before && !wrong && !run.error && <BeforeAndAfter before={before} claims={run.data} />}
    </Section>
  )
}

const BeforeAndAfter = ({ before, claims }: { before: object; claims: Record<string, unknown> }) => {
  const names = Object.keys(claims)
  return (
    <>
      <Notice kind="good">
        {names.length === 0 ? 'It adds nothing to this token.' : `It adds ${names.join(', ')}.`}
      </Notice>
      <div className={style.sides}>
        <div>
          <h3>Before</h3>
          <CopyableText label="token before" text={JSON.stringify(before, null, 2)} />
        </div>
        <div>
          <h3>After</h3>
          <CopyableText label="token after" text={JSON.stringify({ ...before, ...claims }, null, 2)} />
        </div>
      </div>
    </>
  )
}
