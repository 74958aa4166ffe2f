import type { RateLimits } from '#invoke/rate-limits.ts'
import type { WebDoor, WebRequest, WebRoute } from '#invoke/web-route.ts'
import { addressKey } from '#kernel/wire/ip-address-key.ts'

/**
 * Serves users' files at signed addresses. The signature in the address is the credential, so a web page can show the
 * file without a token.
 */

export type OpenFile = (address: { sha256: string; file: string; exp: string; sig: string }) => Promise<{
  name: string
  contentType: string
  bytes: Uint8Array
}>

/** A page may show images of these types; a browser saves a file of any other type. */
const shown = ['image/png', 'image/jpeg', 'image/webp']
const ageSeconds = 15 * 60

export function createFileDoor(open: OpenFile, limits: RateLimits): WebDoor {
  const route: WebRoute = {
    path: '/files/:sha256',
    methods: ['GET'],
    bodyBytesMax: 1_024,
    async admit({ address }: WebRequest) {
      const { fault } = await limits.consume('read', addressKey(address))
      if (fault) throw fault
    },
    async answer({ url }) {
      const { pathname, searchParams } = new URL(url, 'http://files')
      const [, , sha256 = ''] = pathname.split('/')
      const part = (name: string) => searchParams.get(name) ?? ''
      const found = await open({ sha256, file: part('file'), exp: part('exp'), sig: part('sig') })
      const { name, contentType, bytes } = found
      return new Response(Buffer.from(bytes), {
        headers: {
          'content-type': contentType,
          'content-disposition': dispositionOf(name, contentType),
          'cache-control': `private, max-age=${ageSeconds}, immutable`,
          'cross-origin-resource-policy': 'cross-origin',
        },
      })
    },
    async refuseBody(fault) {
      throw fault
    },
  }
  return { routes: [route], documents: [] }
}

function dispositionOf(name: string, contentType: string): string {
  const kind = shown.includes(contentType) ? 'inline' : 'attachment'
  const ascii = name.replaceAll(/[^\w.-]/g, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
