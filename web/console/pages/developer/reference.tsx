import { useState } from 'react'
import { isAllowed, operations } from '../../api/operations.ts'
import { useSession } from '../../api/session.tsx'
import { Badge, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import style from './developer.module.css'

const documents = [
  { title: 'Management API', page: '/api/docs', document: '/api/openapi.json' },
  { title: 'Account API', page: '/api/docs?account', document: '/api/account.openapi.json' },
  { title: 'Experience API', page: '/api/docs?experience', document: '/api/experience.openapi.json' },
  { title: 'Events', document: '/api/asyncapi.json' },
] as const

/** How many operations are listed at once. */
const shown = 12

/** What the issuer says of its own interfaces, and which operations of the Management API this person may call. */
export const Reference = () => {
  const { baseUrl, scopes } = useSession()
  const [text, setText] = useState('')
  const words = text.toLowerCase().split(/\s+/)
  const found = Object.values(operations).filter(({ id, method, path }) =>
    words.every((word) => `${id} ${method} ${path}`.toLowerCase().includes(word)),
  )
  return (
    <>
      <Section title="Documents" lead="Each opens in a tab of its own, as the issuer serves it to everybody.">
        <Rows
          title="Documents"
          empty=""
          rows={documents.map(({ title, document, ...rest }) => ({
            key: title,
            title: 'page' in rest ? <Elsewhere href={`${baseUrl}${rest.page}`}>{title}</Elsewhere> : title,
            facts: <Elsewhere href={`${baseUrl}${document}`}>{document}</Elsewhere>,
          }))}
        />
      </Section>
      <Section
        title="Operations of the Management API"
        lead="One of the permissions that an operation names is enough."
      >
        <input
          className={style.search}
          type="search"
          aria-label="Search for an operation"
          placeholder="users POST, connector, listRoles…"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Rows
          title="Operations"
          empty="There is no such operation."
          rows={found.slice(0, shown).map(({ id, method, path, scopes: needed, secret }) => ({
            key: id,
            title: (
              <code>
                {method} /api{path}
              </code>
            ),
            facts: (
              <>
                {id} · {needed.join(' or ')}
              </>
            ),
            actions: (
              <>
                {secret && <Badge kind="warn">secret</Badge>}
                {isAllowed(id, scopes) ? <Badge kind="good">you may</Badge> : <Badge>you may not</Badge>}
              </>
            ),
          }))}
        />
        {found.length > shown && (
          <p className={style.more}>{found.length - shown} more: search for what you look for.</p>
        )}
      </Section>
    </>
  )
}

const Elsewhere = ({ href, children }: { href: string; children: string }) => (
  <a href={href} target="_blank" rel="noopener noreferrer">
    {children}
  </a>
)
