import { Link } from 'wouter'
import { CopyableText } from '../../components/copy.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Badge, Facts, Page, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { eventTypes } from '../../generated/events.ts'
import { listenersOf, useHooks } from './listeners.ts'

const above = { title: 'Events', path: '/events' }

/** One kind of event: when it occurs, what receivers get, and who they are. */
const EventTypePage = ({ params: { type = '' } }: { params: { type?: string } }) => {
  const hooks = useHooks()
  const row = eventTypes.find((one) => one.type === type)
  if (!row) return <Page title="There is no such event" above={above} lead={`None is called ${type}.`} />
  const { occurs, cause, entity, named, planned, patterns, payload } = row
  return (
    <Page
      title={type}
      above={above}
      lead={
        <>
          Occurs when {occurs.replaceAll('`', '')}. {planned && <Badge kind="warn">not sent yet</Badge>}
        </>
      }
      actions={<LinkButton path={`/events/feed?types=${type}`}>In the feed</LinkButton>}
    >
      <Section title="What it is">
        <Facts
          facts={{
            'Comes of': <code>{cause}</code>,
            'In order for each': entity,
            'Hooks get it by': patterns.map((pattern) => <Badge key={pattern}>{pattern}</Badge>),
            Wildcards: named ? 'none covers it: a hook has to name it' : undefined,
          }}
        />
      </Section>
      <Section title="Who listens">
        {hooks && (
          <Rows
            title="Hooks"
            empty="No hook that is on listens for it."
            rows={listenersOf(hooks, type).map(({ id, name, config }) => ({
              key: id,
              title: <Link href={`/hooks/${id}`}>{name || config.url}</Link>,
              facts: config.url,
            }))}
          />
        )}
      </Section>
      <Section
        title="What receivers get"
        lead="An example, as it stands in the body of a delivery; `hookId` comes first there."
      >
        <CopyableText label="example" text={JSON.stringify(payload, null, 2)} />
      </Section>
    </Page>
  )
}

export default EventTypePage
