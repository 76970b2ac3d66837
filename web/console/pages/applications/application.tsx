import { useLocation } from 'wouter'
import { useRead } from '../../api/queries.ts'
import { ConfirmDeletion } from '../../components/confirm-deletion.tsx'
import { EntityId } from '../../components/copy.tsx'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Badge, Loading, Page, Tabs } from '../../components/page.tsx'
import { keepsSecrets, labelOf } from './application-types.ts'
import { Guide } from './guide.tsx'
import { Roles } from './roles.tsx'
import { Secrets } from './secrets.tsx'
import { settingsOf } from './settings-fields.tsx'

/** One application: what to paste into its code, its settings, secrets and roles. */
const ApplicationPage = ({ params: { id = '', tab = 'guide' } }: { params: { id?: string; tab?: string } }) => {
  const [, navigate] = useLocation()
  const { data, error } = useRead('getApplication', { params: { id } })
  if (error) return <ProblemNotice error={error} />
  if (!data) return <Loading />
  const { body: application, etag } = data
  const path = (name: string) => (name === 'guide' ? `/applications/${id}` : `/applications/${id}/${name}`)
  const tabs = {
    guide: 'Guide',
    settings: 'Settings',
    ...(keepsSecrets(application) && { secrets: 'Secrets' }),
    ...(application.type === 'MachineToMachine' && { roles: 'Roles' }),
  }
  return (
    <Page
      title={application.name}
      above={{ title: 'Applications', path: '/applications' }}
      lead={
        <>
          {labelOf(application.type)} · <EntityId id={id} /> {application.isThirdParty && <Badge>third party</Badge>}
          {application.isAdmin && <Badge kind="warn">may do everything here</Badge>}
        </>
      }
      actions={
        <ConfirmDeletion
          kind="application"
          name={application.name}
          operation="deleteApplication"
          params={{ id }}
          onDone={() => navigate('/applications')}
        />
      }
    >
      <Tabs tabs={Object.entries(tabs).map(([name, title]) => ({ title, path: path(name) }))} current={path(tab)} />
      {tab === 'guide' && <Guide application={application} />}
      {tab === 'settings' && (
        <EntityForm
          {...{ name: 'settings', operation: 'updateApplication', params: { id } }}
          {...{ record: application, etag, groups: settingsOf(application) }}
        />
      )}
      {tab === 'secrets' && <Secrets applicationId={id} />}
      {tab === 'roles' && <Roles applicationId={id} />}
    </Page>
  )
}

export default ApplicationPage
