import { Fault } from '#kernel/contract/fault.ts'

/**
 * Guards against DNS rebinding: without this check, a web page whose host name resolves to this machine could call the
 * gateway from its reader's browser.
 */

type Sent = { host: string | undefined; origin: string | undefined }

const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

type AllowList = {
  baseUrl: () => string
  hosts: readonly string[]
  corsOrigins: readonly string[]
}

/** Throws if the Host header, or the origin of a page, is not allowed. Ports do not matter. */
export function createHostGuard({ baseUrl, hosts, corsOrigins }: AllowList): (sent: Sent) => void {
  let known: { base: string; names: ReadonlySet<string> } | undefined
  const namesAt = (base: string): ReadonlySet<string> => {
    if (known?.base === base) return known.names
    const own = new URL(base).hostname
    const names = new Set([own, ...hosts.map((name) => name.toLowerCase())])
    // A gateway that is reached by one loopback name is reached by all of them.
    if (loopbackNames.includes(own)) for (const name of loopbackNames) names.add(name)
    known = { base, names }
    return names
  }
  return ({ host, origin }) => {
    const names = namesAt(baseUrl())
    if (!names.has(hostnameOf(`http://${host ?? ''}`) ?? ''))
      throw notAllowed('host', 'The Host header names no host of this gateway')
    if (origin === undefined || corsOrigins.includes(origin) || corsOrigins.includes('*')) return
    if (!names.has(hostnameOf(origin) ?? ''))
      throw notAllowed('origin', 'Pages of this origin may not call this gateway')
  }
}

const hostnameOf = (url: string): string | undefined => URL.parse(url)?.hostname

const notAllowed = (reason: string, sentence: string): Fault =>
  new Fault('origin_not_allowed', sentence, { extras: { reason } })
