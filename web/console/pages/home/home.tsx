import { Link } from 'wouter'
import { useReadIfAllowed } from '../../api/queries.ts'
import { nameOfPerson, useSession } from '../../api/session.tsx'
import { Notice } from '../../components/notice.tsx'
import { Page, Section } from '../../components/page.tsx'
import { Icon } from '../../design/icon.tsx'
import { Acting } from './acting.tsx'
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
      <Acting />
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
      <Glance />
    </Page>
  )
}

/** How much there is of what is looked at most. */
const Glance = () => {
  const counts = [
    { title: 'Users', path: '/users', total: useReadIfAllowed('listUsers', one).data?.total },
    { title: 'Organizations', path: '/organizations', total: useReadIfAllowed('listOrganizations', one).data?.total },
    { title: 'Applications', path: '/applications', total: useReadIfAllowed('listApplications', one).data?.total },
    { title: 'Hooks', path: '/hooks', total: useReadIfAllowed('listHooks', one).data?.total },
  ]
  return (
    <ul className={style.glance} aria-label="At a glance">
      {counts.map(
        ({ title, path, total }) =>
          total !== undefined && (
            <li key={path}>
              <Link href={path}>
                <b>{total.toLocaleString('en')}</b> {title}
              </Link>
            </li>
          ),
      )}
    </ul>
  )
}

/** Hooks that somebody has to look at: switched off for their failures, or without a success in the last day. */
const Attention = () => {
  const { data } = useReadIfAllowed('listHooks', { includeExecutionStats: true })
  if (!data) return null
  const off = data.body.filter(({ enabled, disabledReason }) => !enabled && disabledReason !== null)
  const failing = data.body.filter(
    ({ enabled, executionStats }) =>
      enabled && executionStats && executionStats.requestCount > 0 && executionStats.successCount === 0,
  )
  if (off.length + failing.length === 0) return <Notice kind="good">Nothing needs you.</Notice>
  return (
    <Notice kind="warn">
      <p>
        <strong>{off.length + failing.length === 1 ? 'A hook needs you.' : 'Hooks need you.'}</strong> Their events
        wait.
      </p>
      <ul>
        {off.map(({ id, name, disabledReason }) => (
          <li key={id}>
            <Link href={`/hooks/${id}`}>{name || id}</Link> was switched off: {disabledReason}
          </li>
        ))}
        {failing.map(({ id, name, executionStats }) => (
          <li key={id}>
            <Link href={`/hooks/${id}/waiting`}>{name || id}</Link> has taken nothing in the last day, in{' '}
            {executionStats?.requestCount.toLocaleString('en')}{' '}
            {executionStats?.requestCount === 1 ? 'attempt' : 'attempts'}.
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
  const users = useReadIfAllowed('listUsers', one)
  const hooks = useReadIfAllowed('listHooks', { includeExecutionStats: true })
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

export default Home
