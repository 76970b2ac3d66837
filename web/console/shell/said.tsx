import { Dialog } from '../components/dialog.tsx'
import { useAnnouncements } from '../components/notice.tsx'
import { Rows } from '../components/rows.tsx'
import { RelativeTime } from '../components/time.tsx'

/** What was said in passing, for whoever looked elsewhere. */
export const Said = ({ onClose }: { onClose(): void }) => (
  <Dialog title="What was said" isOpen onClose={onClose}>
    <Rows
      title="What was said"
      empty="Nothing yet. What the console says in passing, while this tab is open, stands here afterwards."
      rows={useAnnouncements().map(({ text, at, count }) => ({
        key: String(count),
        title: text,
        facts: <RelativeTime at={at} />,
      }))}
    />
  </Dialog>
)
