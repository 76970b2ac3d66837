import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityId } from '../../components/copy.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Section } from '../../components/page.tsx'
import { RelativeTime } from '../../components/time.tsx'
import type { Calls } from '../../generated/api.ts'
import style from './keys.module.css'
import { Rotate } from './rotate.tsx'

export interface ChainProps {
  title: string
  lead: string
  list: 'listSigningKeys' | 'listIdTokenKeys'
  rotate: 'rotateSigningKeys' | 'rotateIdTokenKeys'
  remove: 'deleteSigningKey' | 'deleteIdTokenKey'
  /** It is to choose. */
  hasAlgorithm?: boolean
  /** What an immediate replacement ends. */
  ends: string
}

type Key = Calls['listSigningKeys']['answer'][number]

const states = {
  Next: { label: 'next', kind: 'warn', says: 'published; signs' },
  Current: { label: 'signs', kind: 'good', says: 'signs since' },
  Previous: { label: 'before', kind: 'plain', says: 'still verifies; goes' },
} as const

/** Keys of one purpose on a line of time. */
export const Chain = (props: ChainProps) => {
  const { title, lead, list, remove } = props
  const { data, error } = useRead(list)
  return (
    <Section title={title} lead={lead} actions={<Rotate {...props} />}>
      <ProblemNotice error={error} />
      {!data && !error && <Loading lines={3} />}
      {data?.body.length === 0 && <p>There is no key of its own: the other one signs everything.</p>}
      <ol className={style.line} aria-label={title}>
        {data?.body.map((key) => (
          <li key={key.id} className={style.key} data-state={key.status}>
            <p className={style.state}>
              <Badge kind={states[key.status].kind}>{states[key.status].label}</Badge> {key.algorithm}
            </p>
            <p>
              {saysOf(key)} <When of={key} />
            </p>
            <EntityId id={key.id} />
            {key.status === 'Previous' && (
              <ConfirmDeletion kind="key" name={key.id} operation={remove} params={{ keyId: key.id }} onDone={() => {}}>
                Tokens that it signed are refused from then on: people sign in again, backends ask for new tokens.
              </ConfirmDeletion>
            )}
          </li>
        ))}
      </ol>
    </Section>
  )
}

/** Discovery lists an algorithm only when every copy of the keys has it. */
const saysOf = ({ status, effectiveAt }: Key): string =>
  status === 'Current' && effectiveAt > Date.now() ? 'announced to applications' : states[status].says

const When = ({ of: { status, effectiveAt, expiresAt } }: { of: Key }) => (
  <RelativeTime at={status === 'Previous' ? expiresAt : effectiveAt} />
)
