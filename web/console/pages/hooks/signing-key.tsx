import { useState } from 'react'
import { call } from '../../api/call.ts'
import { isProblem } from '../../api/problem.ts'
import { signInAgain } from '../../api/sign-in.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { CopyableText } from '../../components/copy.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import { ReplaceKey } from './replace-key.tsx'

/** With which the receiver verifies what it gets. Looking at it leaves a row in the audit trail. */
export const SigningKey = ({ hookId: id }: { hookId: string }) => {
  const [key, setKey] = useState<string>()
  const [error, setError] = useState<unknown>()
  const show = () =>
    call('getHookSigningKey', { params: { id } })
      .then(({ body }) => setKey(body.signingKey))
      .catch((problem: unknown) => {
        if (isProblem(problem, 'console.step_up_required')) signInAgain({ stepUp: true })
        else setError(problem)
      })
  return (
    <Section
      title="Signing key"
      lead="The receiver verifies with it what it gets. Looking at it leaves a row in the audit trail."
      actions={
        <>
          <ReplaceKey hookId={id} onDone={() => setKey(undefined)} />
          {key === undefined && (
            <Allowed operation="getHookSigningKey">
              <Button onPress={show}>Show it</Button>
            </Allowed>
          )}
        </>
      }
    >
      <ProblemNotice error={error} />
      {key !== undefined && <CopyableText label="signing key" text={key} />}
    </Section>
  )
}
