import { spawnSync } from 'node:child_process'

/** Whether there is an nginx to compare with: `apt-get install nginx-light`, say. */
export const nginxInstalled = (): boolean => spawnSync(nginxCommand, ['-v']).status === 0

export const nginxCommand = process.env['NGINX_BIN'] ?? 'nginx'
