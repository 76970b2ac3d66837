import { useRead } from '../../api/queries.ts'
import { EntityForm } from '../../components/entity-form.tsx'
import { ProblemNotice } from '../../components/notice.tsx'
import { Loading, Page } from '../../components/page.tsx'
import { brandingGroups, previewable, toBody, toForm } from './branding-fields.ts'
import { Preview } from './preview.tsx'

/** What the pages look like on which people sign in. */
const Branding = () => {
  const { data, error } = useRead('getSignInExperience')
  return (
    <Page
      title="Branding"
      lead="Of the pages on which people sign in, and of mails. Applications may have their own above it."
    >
      <ProblemNotice error={error} />
      {data ? (
        <EntityForm
          {...{ name: 'branding', operation: 'updateSignInExperience', params: {}, etag: data.etag }}
          {...{ record: toForm(data.body), groups: brandingGroups, bodyOf: toBody }}
          beside={(record) => <Preview settings={previewable(record)} />}
        />
      ) : (
        !error && <Loading />
      )}
    </Page>
  )
}

export default Branding
