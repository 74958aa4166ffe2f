/** The authorization scenarios of the conformance suite against the product, with a person who signs in at its pages. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createBrowser, createOAuthApp, signUp } from '../oauth/oauth-app.ts'
import { register } from '../oauth/session.ts'

const suite = fileURLToPath(new URL('../../node_modules/mcp-conformance-next/dist/index.js', import.meta.url))

/** The suite opens its callback on a port that the registration of its client has to name. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

test('the authorization scenarios pass: metadata, and a code grant for the MCP door', async () => {
  await using app = await createOAuthApp()
  const port = await freePort()
  const { client_id: clientId } = await register(app, {
    redirect_uris: [`http://127.0.0.1:${port}/callback`],
    application_type: 'native',
  })
  const given = ['authorization', '--url', app.base, '--client-id', clientId, '--port', String(port)]
  const child = spawn(process.execPath, [suite, ...given, '--resource', `${app.base}/mcp`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  let output = ''
  const { promise: authorizeUrl, resolve: onUrl, reject: onEnd } = Promise.withResolvers<string>()
  const read = (chunk: Buffer) => {
    output += chunk.toString()
    const url = /^(http\S+\/oauth\/authorize\?\S+)$/m.exec(output)?.[1]
    if (url && output.includes('Waiting')) onUrl(url)
  }
  child.stdout.on('data', read)
  child.stderr.on('data', read)
  void ended.then(() => onEnd(new Error(`the suite ended early: ${output}`)))

  const browser = createBrowser()
  const page = await browser.open(await authorizeUrl)
  const consent = await signUp(app, browser, page, 'suite@example.com')
  const done = await browser.submit(consent, 'allow')
  await fetch(done.url)
  assert.equal(await ended, 0, output)
  assert.doesNotMatch(output, /SKIPPED|FAILURE/)
})
