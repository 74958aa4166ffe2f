const dotless = ['gmail.com', 'googlemail.com']

/** Returns one name for all addresses of one mailbox: without the tag, and without dots where they do not count. */
export function mailboxOf(email: string): string {
  const [local = '', domain = ''] = email.toLowerCase().split('@')
  const [name = ''] = local.split('+')
  // An address that consists only of a tag is a separate mailbox.
  if (name === '') return `${local}@${domain}`
  return dotless.includes(domain) ? `${name.replaceAll('.', '')}@gmail.com` : `${name}@${domain}`
}
