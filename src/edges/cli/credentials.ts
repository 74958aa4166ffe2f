import { oauthSession } from '#sdk/oauth-session.ts'
import type { Auth } from '#sdk/token-source.ts'
import { configPath, readConfig, writeConfig } from './config-files.ts'
import { readSession, sessionStore } from './session-file.ts'
import { type Terminal, UsageError } from './terminal.ts'

export type Credentials = { base_url: string; agent_id: string; secret_key: string }

const fileName = 'credentials.json'
const defaultBaseUrl = 'http://127.0.0.1:8080'
const withoutSlash = (url: string): string => url.replace(/\/+$/, '')

export const credentialsPath = (terminal: Terminal): string => configPath(terminal, fileName)

export function readCredentials(terminal: Terminal): Credentials | undefined {
  const read = readConfig<Credentials>(terminal, fileName, 'portico init')
  if (!read) return undefined
  const { base_url, agent_id, secret_key } = read
  if (base_url && agent_id && secret_key) return { base_url, agent_id, secret_key }
  throw new UsageError(`${credentialsPath(terminal)} has no credentials; remove it and run portico init`)
}

export const writeCredentials = (terminal: Terminal, credentials: Credentials): string =>
  writeConfig(terminal, fileName, credentials)

/** Returns the first known address: of the option, the environment, the sign-in, the stored key, or localhost. */
export function baseUrlOf(terminal: Terminal, given: string | undefined): string {
  const url =
    given ??
    terminal.env.PORTICO_URL ??
    readSession(terminal)?.base_url ??
    readCredentials(terminal)?.base_url ??
    defaultBaseUrl
  if (/^https?:\/\/[^/]/.test(url) && URL.canParse(url)) return withoutSlash(url)
  const origin = given === undefined ? 'PORTICO_URL' : '--base-url'
  throw new UsageError(`${origin} is an address such as ${defaultBaseUrl}, not ${url}`)
}

/** Returns the gateway and how to sign in there. Stored credentials are sent only to the gateway that issued them. */
export function connectionOf(
  terminal: Terminal,
  given: string | undefined,
): { baseUrl: string; auth: Auth | undefined } {
  const { SERVICE_AGENT_ID: agentId, SERVICE_SECRET_KEY: secretKey, PORTICO_TOKEN: token } = terminal.env
  const baseUrl = baseUrlOf(terminal, given)
  if (agentId && secretKey) return { baseUrl, auth: { agentId, secretKey } }
  if (agentId || secretKey)
    throw new UsageError('SERVICE_AGENT_ID and SERVICE_SECRET_KEY have to be set together')
  if (token) return { baseUrl, auth: { token } }
  if (readSession(terminal)?.base_url === baseUrl)
    return { baseUrl, auth: oauthSession(sessionStore(terminal, baseUrl)) }
  const stored = readCredentials(terminal)
  if (stored?.base_url !== baseUrl) return { baseUrl, auth: undefined }
  return { baseUrl, auth: { agentId: stored.agent_id, secretKey: stored.secret_key } }
}
