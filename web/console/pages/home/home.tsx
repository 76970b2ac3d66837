import { Link } from 'wouter'
import { isAllowed, type OperationId } from '../../api/operations.ts'
import { useRead } from '../../api/queries.ts'
import { nameOfPerson, useSession } from '../../api/session.tsx'
import { Notice } from '../../components/notice.tsx'
import { Page, Section } from '../../components/page.tsx'
import { Icon } from '../../design/icon.tsx'
import { Denials } from './denials.tsx'
import style from './home.module.css'

/** Does something need you? And until everything runs: what comes next. */
const Home = () => {
  const { user } = useSession()
  const steps = useSteps()
  const open = steps.filter(({ isDone }) => isDone === false)
  return (
    <Page title={`Hello, ${nameOfPerson(user)}`}>
      <Attention />
      {open.length > 0 && (
        <Section
          title={`Getting started: ${steps.length - open.length} of ${steps.length}`}
          lead="From here to the first token and the first webhook."
        >
          <ol className={style.steps}>
            {steps.map(({ title, text, path, isDone }) => (
              <li key={title} data-done={isDone || undefined}>
                <span className={style.sign}>{isDone && <Icon name="check" size={14} />}</span>
                <div>
                  {isDone ? <b>{title}</b> : <Link href={path}>{title}</Link>}
                  <p>{isDone ? 'Done.' : text}</p>
                </div>
              </li>
            ))}
          </ol>
        </Section>
      )}
      <Denials />
    </Page>
  )
}

/** Hooks that somebody has to look at. */
const Attention = () => {
  const { data } = useReadIfAllowed('listHooks')
  if (!data) return null
  const off = data.body.filter(({ enabled, disabledReason }) => !enabled && disabledReason !== null)
  if (off.length === 0) return <Notice kind="good">Nothing needs you.</Notice>
  return (
    <Notice kind="warn">
      <p>
        <strong>{off.length === 1 ? 'A hook was switched off.' : `${off.length} hooks were switched off.`}</strong>{' '}
        Their events wait.
      </p>
      <ul>
        {off.map(({ id, name, disabledReason }) => (
          <li key={id}>
            <Link href={`/hooks/${id}`}>{name || id}</Link>: {disabledReason}
          </li>
        ))}
      </ul>
    </Notice>
  )
}

const one = { page: 1, page_size: 1 }

/** What there has to be; undefined: not known, or not for this person to know. */
const useSteps = () => {
  const { baseUrl } = useSession()
  const resources = useReadIfAllowed('listResources')
  const applications = useReadIfAllowed('listApplications', { types: ['Native', 'SPA', 'Traditional'], ...one })
  const backends = useReadIfAllowed('listApplications', { types: 'MachineToMachine', ...one })
  const users = useReadIfAllowed('listUsers', { page: 1, page_size: 1 })
  const hooks = useReadIfAllowed('listHooks')
  const own = resources.data?.body.filter(({ indicator }) => indicator !== `${baseUrl}/api`)
  // One of each comes with the issuer: the console, the first backend, and you.
  const more = (total: number | undefined) => (total === undefined ? undefined : total > 1)
  return [
    {
      ...{ title: 'Register your API', path: '/resources/new', isDone: own && own.length > 0 },
      text: 'Tokens are for an API: name it, and what may be done with it.',
    },
    {
      ...{ title: 'Choose the default resource', path: '/resources' },
      isDone: own?.some(({ isDefault }) => isDefault),
      text: 'Tokens are for it when an application names none.',
    },
    {
      ...{ title: 'Make an application', path: '/applications/new' },
      isDone: applications.data && backends.data && (more(applications.data.total) || more(backends.data.total)),
      text: 'Its guide has what you paste into your code for the first token.',
    },
    {
      ...{ title: 'Have users', path: '/users/new', isDone: more(users.data?.total) },
      text: 'They register, or you make the first one.',
    },
    {
      ...{ title: 'Hear of changes', path: '/hooks/new', isDone: hooks.data && hooks.data.body.length > 0 },
      text: 'A hook sends them to your systems, signed.',
    },
  ]
}

const useReadIfAllowed = <Id extends OperationId>(
  id: Id,
  query?: Record<string, string | number | readonly string[]>,
) => useRead(id, query ? { query } : {}, { when: isAllowed(id, useSession().scopes) })

export default Home
