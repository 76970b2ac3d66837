import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page, type PageProps, Tabs } from '../../components/page.tsx'
import { Deliveries } from './deliveries.tsx'
import { Health } from './health.tsx'
import { deliveryFields, hookFields } from './hook-fields.tsx'
import { Lanes } from './lanes.tsx'
import { Replays } from './replays.tsx'
import { Signatures } from './signatures.tsx'
import { SigningKey } from './signing-key.tsx'
import { TestSend } from './test-send.tsx'

/** One hook: how it does, what it was sent, and how it is set. */
const HookPage = ({ params: { id = '', tab = 'deliveries' } }: PageProps) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getHook', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: hook, etag } = data
  const path = (name: string) => (name === 'deliveries' ? `/hooks/${id}` : `/hooks/${id}/${name}`)
  const name = hook.name || id
  return (
    <Page
      title={name}
      above={{ title: 'Hooks', path: '/hooks' }}
      lead={
        <>
          <code>{hook.config.url}</code> {!hook.enabled && <Badge kind="warn">off</Badge>}
        </>
      }
      actions={
        <>
          <TestSend hook={hook} />
          <ConfirmDeletion
            {...{ kind: 'hook', name, operation: 'deleteHook', params: { id } }}
            onDone={() => navigate('/hooks')}
          />
        </>
      }
    >
      <Tabs
        tabs={[
          { title: 'Deliveries', path: path('deliveries') },
          { title: 'Waiting', path: path('waiting') },
          { title: 'Send again', path: path('replays') },
          { title: 'Signatures', path: path('signatures') },
          { title: 'Settings', path: path('settings') },
        ]}
        current={path(tab)}
      />
      {tab === 'deliveries' && (
        <>
          <Health hookId={id} />
          <Deliveries hookId={id} />
        </>
      )}
      {tab === 'waiting' && (
        <>
          <Health hookId={id} />
          <Lanes hook={hook} />
        </>
      )}
      {tab === 'replays' && <Replays hookId={id} />}
      {tab === 'signatures' && <Signatures hookId={id} />}
      {tab === 'settings' && (
        <>
          <EntityForm
            {...{ name: 'settings', operation: 'updateHook', params: { id }, record: hook, etag }}
            groups={{ 'Where to, and what': hookFields, Delivery: deliveryFields }}
          />
          <SigningKey hookId={id} />
        </>
      )}
    </Page>
  )
}

export default HookPage
