import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { useGateway } from '../../api/gateways.ts'
import { Button } from '../../components/button.tsx'
import { Fields } from '../../components/fields.tsx'
import { CopyInspectionCurl } from '../../components/inspection-curl.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Facts, Section } from '../../components/page.tsx'
import { NearMisses } from '../why/near-misses.tsx'
import style from './gateway.module.css'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']

/** A path alone is of any host. */
const urlOf = (text: string): string =>
  /^https?:\/\//i.test(text) ? text : `http://localhost${text.startsWith('/') ? '' : '/'}${text}`

/** Which route takes a request, and which ones nearly do. The question is in the address. */
export const Match = ({ gateway }: { gateway: string }) => {
  const [search, setSearch] = useSearchParams()
  const asked = { method: search.get('method') ?? 'GET', url: search.get('url') ?? '' }
  const [typed, setTyped] = useState(asked)
  const query = { method: asked.method, url: urlOf(asked.url) }
  const { data, error } = useGateway(gateway, 'match', { query }, { when: asked.url !== '' })
  return (
    <Section
      title="Which route takes it?"
      lead="Asked as a request is: nothing is sent on."
      actions={asked.url !== '' && <CopyInspectionCurl name="match" input={{ query }} />}
    >
      <form
        className={style.match}
        onSubmit={(event) => {
          event.preventDefault()
          setSearch((before) => {
            const next = new URLSearchParams(before)
            for (const [name, value] of Object.entries(typed)) next.set(name, value.trim())
            next.delete('route')
            return next
          })
        }}
      >
        <Fields
          fields={[
            {
              ...{ path: 'method', label: 'Method', kind: 'choice', isRequired: true },
              options: Object.fromEntries(methods.map((name) => [name, name])),
            },
            {
              ...{ path: 'url', label: 'Address', isCode: true, isRequired: true, autoComplete: 'off' },
              placeholder: 'https://api.example/orders/42 or /orders/42',
            },
          ]}
          values={typed}
          onChange={(path, value) => setTyped({ ...typed, [path]: String(value) })}
        />
        <Button type="submit">Match</Button>
      </form>
      <ProblemNotice error={asked.url === '' ? undefined : error} />
      {data && asked.url !== '' && (
        <div role="status" className={style.answer}>
          {data.route === undefined ? (
            <Notice kind="warn">
              <p>
                <strong>No route takes it.</strong> {data.refused}
              </p>
            </Notice>
          ) : (
            <Notice kind={data.refused === undefined ? 'good' : 'warn'}>
              <p>
                The route <Link href={`/gateway?gateway=${gateway}&route=${data.route}`}>{data.route}</Link> takes it
                {data.refused === undefined ? '.' : `, and refuses its spelling: ${data.refused}`}
              </p>
            </Notice>
          )}
          {data.params && Object.keys(data.params).length > 0 && <Facts facts={data.params} />}
          <NearMisses misses={data.nearMisses} />
        </div>
      )}
    </Section>
  )
}
