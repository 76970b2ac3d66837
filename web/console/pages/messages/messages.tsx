import { Link } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { Allowed } from '../../components/allowed.tsx'
import { LinkButton } from '../../components/link-button.tsx'
import { Notice, ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, Section } from '../../components/page.tsx'
import { Rows } from '../../components/rows.tsx'
import { RelativeTime } from '../../components/time.tsx'
import type { Connector } from '../connectors/kinds.ts'

const channels = [
  { type: 'Email', title: 'Mail', missing: 'Nobody gets mail: neither codes nor notices.' },
  { type: 'Sms', title: 'Text messages', missing: 'Nobody gets text messages.' },
] as const

/** By what mail and text messages go out: one provider of each. */
const Messages = () => {
  const { data, error } = useRead('listConnectors')
  return (
    <Page
      title="Messages"
      lead="Codes, invitations and notices, by mail and text message: who sends them, and in which words."
    >
      <ProblemNotice error={error} />
      {data
        ? channels.map((channel) => (
            <Channel key={channel.type} {...channel} connector={data.body.find(({ type }) => type === channel.type)} />
          ))
        : !error && <Loading />}
    </Page>
  )
}

interface ChannelProps {
  type: 'Email' | 'Sms'
  title: string
  missing: string
  connector: Connector | undefined
}

const Channel = ({ type, title, missing, connector }: ChannelProps) => (
  <Section
    title={title}
    actions={
      <Allowed operation="createConnector">
        <LinkButton icon={connector ? undefined : 'plus'} path={`/messages/new/${type}`}>
          {connector ? 'Another provider' : 'Set up'}
        </LinkButton>
      </Allowed>
    }
  >
    {connector ? (
      <Rows
        title={title}
        empty=""
        rows={[
          {
            key: connector.id,
            title: <Link href={`/messages/${connector.id}`}>{connector.name}</Link>,
            facts: (
              <>
                {connector.description} Set up <RelativeTime at={connector.createdAt} />.
              </>
            ),
          },
        ]}
      />
    ) : (
      <Notice kind="warn">{missing}</Notice>
    )}
  </Section>
)

export default Messages
