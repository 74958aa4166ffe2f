const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

export const isRemote = (value: string | undefined): boolean =>
  value !== undefined && URL.canParse(value) && !loopback.test(new URL(value).hostname)

export const isUnencryptedRemote = (value: string | undefined): boolean =>
  value !== undefined && isRemote(value) && ['http:', 'ws:'].includes(new URL(value).protocol)

/** Whether a database URL leads to another machine. On a local socket it has no host, or a folder as its host. */
export const isRemoteDatabase = (value: string | undefined): boolean => {
  if (value === undefined || !URL.canParse(value)) return false
  const { hostname, searchParams } = new URL(value)
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  return host !== '' && !host.startsWith('/') && !loopback.test(host)
}

const encryptedModes = ['require', 'verify-ca', 'verify-full']

export const isUnencryptedRemoteDatabase = (value: string | undefined): boolean =>
  value !== undefined &&
  isRemoteDatabase(value) &&
  !encryptedModes.includes(new URL(value).searchParams.get('sslmode') ?? '')
