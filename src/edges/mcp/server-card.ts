/** The card describes the server for registries and clients that have no connection yet. */

const schema = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json'

export const serverInfo = (version: string) => ({ name: 'portico', title: 'Portico', version })

type Facts = { baseUrl: string; version: string; protocolVersions: readonly string[] }

export function serverCard({ baseUrl, version, protocolVersions }: Facts): object {
  const authorization = {
    name: 'Authorization',
    description: 'Bearer token: an OAuth 2.1 access token, a key with an end date, or one of `auth_token`',
    isRequired: true,
    isSecret: true,
  }
  return {
    $schema: schema,
    // The name begins with the reverse DNS name of the host that serves the card.
    name: `${reverseDns(new URL(baseUrl).hostname)}/portico`,
    version,
    title: 'Portico',
    description: 'Trading and research gateway: perps, spot, swaps, earn, wallets and policies',
    websiteUrl: `${baseUrl}/docs`,
    remotes: [
      {
        type: 'streamable-http',
        url: `${baseUrl}/mcp`,
        headers: [authorization],
        supportedProtocolVersions: protocolVersions,
      },
      { type: 'sse', url: `${baseUrl}/mcp/sse`, headers: [authorization] },
    ],
  }
}

const reverseDns = (hostname: string): string =>
  /^[a-zA-Z0-9.-]+$/.test(hostname) ? hostname.split('.').reverse().join('.') : 'localhost'
