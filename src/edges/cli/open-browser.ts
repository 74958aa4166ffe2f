import { spawn } from 'node:child_process'

const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  // Without a shell, which would read the ampersands of the address.
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Opens the browser of the desktop. A machine without one is no error: the address is printed as well. */
export function openBrowser(url: string): void {
  const [command, ...words] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...words, url], { stdio: 'ignore', detached: true })
  child.once('error', () => {})
  child.unref()
}
