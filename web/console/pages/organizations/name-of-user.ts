interface Named {
  id: string
  name: string | null
  username: string | null
  primaryEmail: string | null
  primaryPhone: string | null
}

export const nameOfUser = ({ name, username, primaryEmail, primaryPhone, id }: Named): string =>
  name || username || primaryEmail || primaryPhone || id
