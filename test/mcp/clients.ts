/** The official clients of both lines of the library, connected to a gateway. */
import { Client as ModernClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StreamableHTTPClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const info = { name: 'test', version: '1.0.0' }
export type ToolReply = {
  content: { type: string; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}
export type ProgressReport = { progress: number; message?: string }
export type ListedTool = {
  name: string
  description?: string
  inputSchema: { properties?: Record<string, { type?: unknown; description?: string }> }
  annotations?: { readOnlyHint?: boolean }
}
export type McpClient = {
  name: string
  listTools(): Promise<ListedTool[]>
  call(
    name: string,
    input?: Record<string, unknown>,
    onProgress?: (report: ProgressReport) => void,
  ): Promise<ToolReply>
  resources(): Promise<string[]>
  read(uri: string): Promise<string>
  prompts(): Promise<string[]>
  prompt(name: string, given: Record<string, string>): Promise<string>
  capabilities(): object
  instructions(): string
  /** Listens for changes of the list of tools; the answer counts them. Clients of 2025 cannot. */
  listen(): Promise<() => number>
} & AsyncDisposable

/** `query` is the part of the address that says which tools the client gets. */
type Credential = { authorization: string; query?: string }

export const facade = (name: string, client: ModernClient | FormerClient): McpClient => {
  const each = client as ModernClient
  return {
    name,
    listTools: async () => (await each.listTools()).tools as never,
    call: async (tool, input = {}, onProgress) =>
      (await each.callTool(
        { name: tool, arguments: input },
        ...(client instanceof FormerClient ? [undefined as never] : []),
        ...(onProgress ? [{ onprogress: onProgress } as never] : []),
      )) as ToolReply,
    resources: async () => (await each.listResources()).resources.map(({ uri }) => uri),
    read: async (uri) => {
      const [found] = (await each.readResource({ uri })).contents
      return found && 'text' in found ? String(found.text) : ''
    },
    prompts: async () => (await each.listPrompts()).prompts.map(({ name: prompt }) => prompt),
    prompt: async (prompt, given) => {
      const [message] = (await each.getPrompt({ name: prompt, arguments: given })).messages
      return message?.content.type === 'text' ? message.content.text : ''
    },
    capabilities: () => each.getServerCapabilities() ?? {},
    instructions: () => each.getInstructions() ?? '',
    async listen() {
      let changes = 0
      each.setNotificationHandler('notifications/tools/list_changed', () => {
        changes++
      })
      await each.listen({ toolsListChanged: true })
      return () => changes
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}

const addressOf = (url: string, path: string, { query = '' }: Credential) => new URL(path + query, url)
const optionsOf = ({ authorization }: Credential) => ({ requestInit: { headers: { authorization } } })

export async function modernClient(url: string, credential: Credential): Promise<McpClient> {
  const client = new ModernClient(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(
    new StreamableHTTPClientTransport(addressOf(url, '/mcp', credential), optionsOf(credential)),
  )
  return facade('2026-07-28', client)
}

export async function formerClient(url: string, credential: Credential): Promise<McpClient> {
  const client = new FormerClient(info)
  await client.connect(
    new FormerTransport(addressOf(url, '/mcp', credential), optionsOf(credential)) as never,
  )
  return facade('2025', client)
}

/** The transport of 2024. */
export async function sseClient(url: string, credential: Credential): Promise<McpClient> {
  const client = new FormerClient(info)
  const withToken: typeof fetch = (address, init) => {
    const headers = new Headers(init?.headers)
    headers.set('authorization', credential.authorization)
    return fetch(address, { ...init, headers })
  }
  await client.connect(
    new SSEClientTransport(addressOf(url, '/mcp/sse', credential), { fetch: withToken as never }),
  )
  return facade('sse', client)
}

export const everyClientOf = async (url: string, credential: Credential): Promise<McpClient[]> => [
  ...(await clientsOf(url, credential)),
  await sseClient(url, credential),
]

export const clientsOf = (url: string, credential: Credential): Promise<McpClient[]> =>
  Promise.all([modernClient(url, credential), formerClient(url, credential)])

export const errorOf = ({ isError, content }: ToolReply): Record<string, unknown> | undefined =>
  isError ? (JSON.parse(content[0]?.text ?? '{}') as { error: Record<string, unknown> }).error : undefined
