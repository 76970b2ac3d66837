import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { call } from '../../api/call.ts'
import { isProblem } from '../../api/problem.ts'
import { useRead } from '../../api/queries.ts'
import { signInAgain } from '../../api/sign-in.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { useDraft } from '../../components/draft.ts'
import type { Field } from '../../components/field.ts'
import { Fields } from '../../components/fields.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import { checkSignature, firstDifference } from './signature.ts'

const fields: readonly Field[] = [
  {
    ...{ path: 'headers', label: 'Headers as they arrived', kind: 'lines', isCode: true, isRequired: true },
    placeholder: 'webhook-id: …\nwebhook-timestamp: …\nwebhook-signature: v1,…',
  },
  {
    path: 'body',
    label: 'Body as it arrived',
    kind: 'lines',
    isCode: true,
    isRequired: true,
    placeholder: '{"hookId":…',
  },
]
const keyField: Field = {
  ...{ path: 'key', label: 'Signing key', isCode: true, isRequired: true, isSecret: true, autoComplete: 'off' },
  hint: 'Of whoever receives it, in either form. It stays in this page.',
}

/** For whoever writes a receiver: why a signature does not hold. Nothing that is pasted is sent. */
export const Signatures = ({ hookId: id }: { hookId: string }) => {
  const { draft, setDraft, forget, isOf } = useDraft('signature')
  isOf([...fields, keyField])
  const [error, setError] = useState<unknown>()
  const { headers = '', body = '', key = '' } = draft as Record<string, string>
  const useOwnKey = () =>
    call('getHookSigningKey', { params: { id } })
      .then((answer) => setDraft({ ...draft, key: answer.body.signingKey }))
      .catch((problem: unknown) => {
        if (isProblem(problem, 'console.step_up_required')) signInAgain({ stepUp: true })
        else setError(problem)
      })
  const isReady = headers.trim() !== '' && body !== '' && key.trim() !== ''
  return (
    <Section
      title="Check a signature"
      lead="Paste what your receiver got. It is checked in this page: nothing of it is sent."
      actions={
        <>
          {(headers || body || key) && <Button onPress={forget}>Clear</Button>}
          <Allowed operation="getHookSigningKey">
            <Button onPress={useOwnKey}>Take the key of this hook</Button>
          </Allowed>
        </>
      }
    >
      <ProblemNotice error={error} />
      <Fields
        fields={[...fields, keyField]}
        values={draft}
        onChange={(path, value) => setDraft({ ...draft, [path]: value })}
      />
      {isReady && <Result {...{ hookId: id, headers, body, signingKey: key }} />}
    </Section>
  )
}

interface ResultProps {
  hookId: string
  headers: string
  body: string
  signingKey: string
}

const Result = ({ hookId: id, headers, body, signingKey: key }: ResultProps) => {
  const { data: verdict } = useQuery({
    queryKey: ['signature', headers, body, key],
    queryFn: () => checkSignature({ headers, body, key, now: Date.now() }),
    gcTime: 0,
  })
  if (!verdict) return null
  return (
    <>
      <Notice kind={verdict.isGenuine ? 'good' : 'bad'}>
        <p>
          <strong>{verdict.isGenuine ? 'The signature is genuine.' : 'The signature does not hold.'}</strong>{' '}
          {verdict.isGenuine && `Checked: ${verdict.checked.join(' and ')}.`}
        </p>
        {verdict.hints.map((hint) => (
          <p key={hint}>{hint}</p>
        ))}
      </Notice>
      {!verdict.isGenuine && <Difference hookId={id} body={body} />}
    </>
  )
}

/** Beside what was sent, where somebody came here from its delivery. */
const Difference = ({ hookId: id, body }: { hookId: string; body: string }) => {
  const [search] = useSearchParams()
  const deliveryId = search.get('delivery') ?? ''
  const { data } = useRead('getHookDelivery', { params: { id, deliveryId } }, { when: deliveryId !== '' })
  if (deliveryId === '')
    return (
      <p>
        Open the delivery in <Link href={`/hooks/${id}`}>the list</Link> and check from there, to see the first byte
        that differs.
      </p>
    )
  if (!data?.body.body) return null
  const difference = firstDifference(JSON.stringify(data.body.body), body)
  if (!difference) return <p>The body is what was sent, byte by byte: the key or the headers are others.</p>
  const { at, sent, got } = difference
  return (
    <p>
      The first byte that differs is number {at}: sent was <code>{sent || 'nothing'}</code>, here is{' '}
      <code>{got || 'nothing'}</code>.
    </p>
  )
}
