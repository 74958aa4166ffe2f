import { readConfig, writeConfig } from './config-files.ts'
import type { Terminal } from './terminal.ts'

/** This machine has one OAuth client for each gateway, which all people who sign in here share. */

type Client = { base_url: string; client_id: string }
const fileName = 'clients.json'
const clientsMax = 20

const readClients = (terminal: Terminal): Client[] => {
  const { clients } = readConfig<{ clients: Client[] }>(terminal, fileName, 'portico login') ?? {}
  return Array.isArray(clients) ? clients.filter((each) => typeof each?.client_id === 'string') : []
}

export const readClientId = (terminal: Terminal, baseUrl: string): string | undefined =>
  readClients(terminal).find((each) => each.base_url === baseUrl)?.client_id

/** An undefined `clientId` makes this machine forget its client, so that the next sign-in registers a new one. */
export function writeClientId(terminal: Terminal, baseUrl: string, clientId: string | undefined): void {
  const others = readClients(terminal).filter((each) => each.base_url !== baseUrl)
  const own = clientId === undefined ? [] : [{ base_url: baseUrl, client_id: clientId }]
  writeConfig(terminal, fileName, { clients: [...own, ...others].slice(0, clientsMax) })
}

const hopsMax = 5
const probeMs = 15_000

/**
 * Returns whether the server refuses the client of this sign-in. The probe asks with `prompt=none`, which needs no
 * browser: the server sends the answer back to a known client, but shows an unknown one an error page, at which a
 * person would be stuck.
 */
export async function isRefusedClient(authorizeUrl: string): Promise<boolean> {
  const probe = new URL(authorizeUrl)
  const returnsTo = probe.searchParams.get('redirect_uri') ?? ''
  probe.searchParams.set('prompt', 'none')
  const signal = AbortSignal.timeout(probeMs)
  let url = probe
  for (let hop = 0; hop < hopsMax; hop++) {
    const reply = await fetch(url, { redirect: 'manual', signal }).catch(() => undefined)
    await reply?.body?.cancel()
    const location = reply?.headers.get('location')
    // An outage of the server says nothing about whether the server knows the client.
    if (!reply || !location) return reply?.status === 400 || reply?.status === 401
    if (location.startsWith(returnsTo)) {
      const error = new URL(location, url).searchParams.get('error')
      return error === 'invalid_client' || error === 'unauthorized_client'
    }
    url = new URL(location, url)
  }
  return false
}
