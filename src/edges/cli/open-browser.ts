import { spawn } from 'node:child_process'

const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  // No shell is used, because it would interpret the ampersands of the address.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Opens the browser of the desktop. A machine without one is no error, because the address is also printed. */
export function openBrowser(url: string): void {
  const [command, ...words] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...words, url], { stdio: 'ignore', detached: true })
  child.once('error', () => {})
  child.unref()
}
