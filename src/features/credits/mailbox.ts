const dotless = ['gmail.com', 'googlemail.com']

/** One name for all addresses that lead to one mailbox: without its tag, and without dots where they do not count. */
export function mailboxOf(email: string): string {
  const [local = '', domain = ''] = email.toLowerCase().split('@')
  const [name = ''] = local.split('+')
  // A tag alone is a mailbox of its own.
  if (name === '') return `${local}@${domain}`
  return dotless.includes(domain) ? `${name.replaceAll('.', '')}@gmail.com` : `${name}@${domain}`
}
