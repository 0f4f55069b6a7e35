import { testLanguage } from '../contract';
import { java } from './language';

testLanguage(java);
