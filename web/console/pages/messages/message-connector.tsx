import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page, Tabs } from '../../components/page.tsx'
import { ConnectorForm } from '../connectors/connector-form.tsx'
import { useFactories } from '../connectors/kinds.ts'
import { TestSend } from './test-send.tsx'
import { Texts } from './texts.tsx'

/** One provider of mail or text messages. */
const MessageConnector = ({ params: { id = '', tab } }: { params: { id?: string; tab?: string } }) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getConnector', { params: { id } })
  const factories = useFactories(['Email', 'Sms'])
  if (error) return <ProblemNotice error={error} />
  if (!data || !factories) return <Loading />
  const { body: connector, etag } = data
  const factory = factories.find((one) => one.id === connector.connectorId)
  const path = `/messages/${id}`
  return (
    <Page
      title={connector.name}
      lead={connector.description}
      above={{ title: 'Messages', path: '/messages' }}
      actions={
        <ConfirmDeletion
          {...{ kind: 'provider', name: connector.name, operation: 'deleteConnector', params: { id } }}
          onDone={() => navigate('/messages')}
        />
      }
    >
      <Tabs
        tabs={[
          { title: 'Configuration', path },
          { title: 'Texts', path: `${path}/texts` },
        ]}
        current={tab ? `${path}/${tab}` : path}
      />
      {tab === 'texts' ? (
        <Texts connector={connector} etag={etag} />
      ) : (
        <>
          {factory && <ConnectorForm connector={connector} factory={factory} etag={etag} />}
          <TestSend connector={connector} />
        </>
      )}
    </Page>
  )
}

export default MessageConnector
