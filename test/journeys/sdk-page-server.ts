/** A server of static files: a page, and the modules of the package that it imports, as they are packed. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { stripTypeScriptTypes } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

const html = `<!doctype html>
<title>Page</title>
<script type="importmap">{"imports": {"portico-sdk": "/sdk/sdk.js"}}</script>
<script type="module" src="/page.js"></script>
`

const script = stripTypeScriptTypes(readFileSync(new URL('sdk-page.ts', import.meta.url), 'utf8'))

/** `tarball`: the packed package, unpacked into the folder. */
export async function servePages(tarball: string, folder: string) {
  execFileSync('tar', ['-xzf', tarball, '-C', folder])
  const server = createServer(({ url = '/' }, reply) => {
    const { pathname } = new URL(url, 'http://localhost')
    const send = (type: string, text: string) => reply.writeHead(200, { 'content-type': type }).end(text)
    if (pathname === '/' || pathname === '/callback') return send('text/html', html)
    if (pathname === '/page.js') return send('text/javascript', script)
    if (/^\/sdk\/[\w-]+\.js$/.test(pathname))
      return send('text/javascript', readFileSync(join(folder, 'package', pathname), 'utf8'))
    return reply.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    /** Another site than the gateway, whose address is a number. */
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
