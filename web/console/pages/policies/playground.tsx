import { useEffect, useState } from 'react'
import { useSearchParams } from 'wouter'
import { useAskGateway, useDecision } from '../../api/gateways.ts'
import { evaluating } from '../../api/inspecting.ts'
import { Allowed } from '../../components/allowed.tsx'
import { Button } from '../../components/button.tsx'
import { useDraft } from '../../components/draft.ts'
import { Fields } from '../../components/fields.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Section } from '../../components/page.tsx'
import { useCandidates } from './candidates.ts'
import type { Policies } from './files.tsx'
import style from './policies.module.css'
import { TrialResult } from './trial-result.tsx'

const begin = {
  version: 1,
  request: { method: 'GET', path: '/orders/1' },
  route: { id: 'orders', scopes: ['read:orders'], impersonation: 'deny', context: {} },
  token: { scopes: ['read:orders'] },
  subject: { id: 'alice' },
}

/** An input for the rules as they are written: one that was typed, or that of a request that was made. */
export const Playground = ({ gateway, policies }: { gateway: string; policies: Policies }) => {
  const candidates = useCandidates(gateway, policies.files)
  const { draft, setDraft } = useDraft('playground', { input: JSON.stringify(begin, null, 2) })
  const [search, setSearch] = useSearchParams()
  const [typed, setTyped] = useState(search.get('request') ?? '')
  const [wrong, setWrong] = useState<string>()
  const attempt = useAskGateway('try')
  const request = search.get('request')
  const input = String(draft['input'] ?? '')
  const entrypoint = String(draft['entrypoint'] ?? policies.entrypoints[0] ?? '')
  const run = () => {
    try {
      setWrong(undefined)
      attempt.mutate({ gateway, body: { files: candidates.texts, entrypoint, input: JSON.parse(input) } })
    } catch {
      setWrong('The input is no JSON.')
    }
  }
  const changed = Object.keys(candidates.texts)
  return (
    <>
      <Section
        title="Input"
        lead={
          changed.length === 0
            ? 'What a policy is asked with. The rules are those in the folder.'
            : `What a policy is asked with. The rules are those in the folder, with what you have written: ${changed.join(', ')}.`
        }
      >
        <form
          className={style.line}
          onSubmit={(event) => {
            event.preventDefault()
            setSearch((before) => {
              const next = new URLSearchParams(before)
              next.set('request', typed.trim())
              return next
            })
          }}
        >
          <Fields
            fields={[{ path: 'request', label: 'Request id', isCode: true, autoComplete: 'off' }]}
            values={{ request: typed }}
            onChange={(_, value) => setTyped(String(value))}
          />
          <Button type="submit" isDisabled={typed.trim() === ''}>
            Take its input
          </Button>
        </form>
        {request && (
          <Recorded
            key={request}
            request={request}
            onFound={(text, path) =>
              setDraft((before) => ({ ...before, input: text, ...(path && { entrypoint: path }) }))
            }
          />
        )}
        <Fields
          fields={[
            {
              ...{ path: 'entrypoint', label: 'Entrypoint', kind: 'choice', isRequired: true },
              options: Object.fromEntries([...new Set([...policies.entrypoints, entrypoint])].map((one) => [one, one])),
            },
            { path: 'input', label: 'Input', kind: 'code', language: 'json' },
          ]}
          values={{ input, entrypoint }}
          onChange={(path, value) => setDraft((before) => ({ ...before, [path]: value }))}
        />
        <div className={style.actions}>
          <Allowed operation={evaluating}>
            <Button kind="main" icon="check" isPending={attempt.isPending} isDisabled={!policies.canTry} onPress={run}>
              Ask the rules
            </Button>
          </Allowed>
        </div>
        {wrong && (
          <div role="alert">
            <Notice kind="bad">{wrong}</Notice>
          </div>
        )}
        <ProblemNotice error={attempt.error} />
      </Section>
      {attempt.data && !wrong && (
        <Section title="What the rules say">
          <TrialResult answer={attempt.data} />
        </Section>
      )}
    </>
  )
}

/** The input of a request, as the masks leave it. */
const Recorded = ({ request, onFound }: { request: string; onFound(input: string, entrypoint?: string): void }) => {
  const { data, error } = useDecision(request)
  const place = `playground took ${request}`
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each request, or what is typed would be lost
  useEffect(() => {
    if (!data || sessionStorage.getItem(place)) return
    sessionStorage.setItem(place, 'yes')
    onFound(JSON.stringify(data.input ?? null, null, 2), data.path)
  }, [data])
  if (error) return <ProblemNotice error={error} />
  const hidden = [...(data?.erased ?? []), ...(data?.masked ?? [])].filter((pointer) => pointer.startsWith('/input'))
  if (hidden.length === 0) return null
  return <Notice>Masks have taken {hidden.join(', ')} out of its record.</Notice>
}
