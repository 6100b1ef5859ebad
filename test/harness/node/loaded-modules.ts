/* Loaded before a program under test (`node --import`): writes down every module that it loads, to LOADED_MODULES. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import process from 'node:process';

const { LOADED_MODULES: file } = process.env;
if (file !== undefined)
  registerHooks({
    load(url, context, next) {
      appendFileSync(file, `${url}\n`);
      return next(url, context);
    },
  });
